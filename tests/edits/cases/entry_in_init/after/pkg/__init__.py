from .a import g
def f():
    return g()
