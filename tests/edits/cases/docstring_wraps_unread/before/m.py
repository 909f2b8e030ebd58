import functools
def deco(fn):
    @functools.wraps(fn)
    def inner():
        return fn()
    return inner
@deco
def h():
    """Give one."""
    return 1
def f():
    return h()
