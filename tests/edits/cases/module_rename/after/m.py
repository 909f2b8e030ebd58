from h2 import h
def f():
    return h()
