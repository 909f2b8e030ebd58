import pkg.b as c
def f():
    return c.g()
