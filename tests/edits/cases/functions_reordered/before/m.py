def a():
    return 1
def b():
    return a() + 1
def f():
    return b()
