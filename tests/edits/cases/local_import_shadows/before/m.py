def h():
    return 2
def f():
    from h1 import h
    return h()
