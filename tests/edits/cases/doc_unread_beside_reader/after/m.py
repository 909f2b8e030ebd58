def describe(fn):
    return fn.__doc__
def h():
    """Two."""
    return 1
def f():
    return h()
