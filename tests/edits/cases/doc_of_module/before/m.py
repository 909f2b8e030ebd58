"""Text."""
def f():
    return __doc__
