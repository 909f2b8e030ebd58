import pkg
def f():
    return pkg.load("one").N
