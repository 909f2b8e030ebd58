def g(x=1):
    return x
g.__defaults__ = (2,)
def f():
    return g()
