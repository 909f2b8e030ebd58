import h1
def f():
    return h1.__doc__
