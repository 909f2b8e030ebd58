def same(fn):
    return fn
@same
def g():
    return 1
def f():
    return g()
