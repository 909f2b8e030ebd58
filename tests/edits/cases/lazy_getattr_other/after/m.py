import pkg
def f():
    return pkg.go()
