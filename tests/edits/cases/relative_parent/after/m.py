from pkg.sub.a import f as g
def f():
    return g()
