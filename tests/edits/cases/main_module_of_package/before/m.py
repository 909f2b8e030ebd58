import pkg
def f():
    return pkg.X
