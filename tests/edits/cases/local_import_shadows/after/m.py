def h():
    return 3
def f():
    from h1 import h
    return h()
