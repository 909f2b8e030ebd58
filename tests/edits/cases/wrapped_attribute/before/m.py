import functools
def deco(fn):
    @functools.wraps(fn)
    def inner():
        return "inner"
    return inner
@deco
def h():
    return 1
def f():
    return h.__wrapped__()
