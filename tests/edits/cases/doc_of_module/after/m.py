"""Other text."""
def f():
    return __doc__
