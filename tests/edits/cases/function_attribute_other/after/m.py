def g():
    return 1
def h():
    return 2
h.limit = 4
def f():
    return g()
