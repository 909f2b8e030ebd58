def g():
    return g.limit
g.limit = 4
def f():
    return g()
