def g(x=1):
    return x
g.__defaults__ = (3,)
def f():
    return g()
