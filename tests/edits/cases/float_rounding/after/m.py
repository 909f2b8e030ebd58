def f():
    return 0.1 + (0.2 + 0.3)
