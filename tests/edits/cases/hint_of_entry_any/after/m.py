from h1 import h
def f():
    return h(1, "x", c=2, e=3)
