from h1 import h
def f():
    return h(3)
