def g():
    return 1
def h():
    return 2
h.limit = 3
def f():
    return g()
