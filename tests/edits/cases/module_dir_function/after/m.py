import h1
def f():
    return dir(h1)
