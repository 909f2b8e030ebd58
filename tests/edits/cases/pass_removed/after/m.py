class A:
    """A thing."""
    n = 1
def f():
    return A.n
