import h1
def f():
    return 1
