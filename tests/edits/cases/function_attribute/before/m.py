def g():
    return g.limit
g.limit = 3
def f():
    return g()
