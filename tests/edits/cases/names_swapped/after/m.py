def b():
    return 1
def a():
    return 2
def f():
    return a()
