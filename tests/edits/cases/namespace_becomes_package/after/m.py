import ns.a
def f():
    return ns.a.g()
