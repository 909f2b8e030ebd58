import h1
def f():
    return h1.X
