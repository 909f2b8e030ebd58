def f():
    return False
