def describe(fn):
    return fn.__doc__
def h():
    """One."""
    return 1
def f():
    return h()
