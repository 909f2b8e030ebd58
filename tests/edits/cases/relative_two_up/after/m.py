from a.b.c import g
def f():
    return g()
