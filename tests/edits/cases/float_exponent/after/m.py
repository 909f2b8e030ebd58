def f():
    return 1e3
