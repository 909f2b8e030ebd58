def f():
    return 2 + 3 * 4
