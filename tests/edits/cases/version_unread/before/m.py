from pkg import h
def f():
    return h()
