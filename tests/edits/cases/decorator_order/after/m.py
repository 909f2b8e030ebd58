def add(fn):
    return lambda: fn() + 1
def double(fn):
    return lambda: fn() * 2
@double
@add
def h():
    return 3
def f():
    return h()
