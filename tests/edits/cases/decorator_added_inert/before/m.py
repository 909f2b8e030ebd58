def same(fn):
    return fn
def g():
    return 1
def f():
    return g()
