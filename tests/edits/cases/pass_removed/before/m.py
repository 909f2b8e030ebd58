class A:
    """A thing."""
    pass
    n = 1
def f():
    return A.n
