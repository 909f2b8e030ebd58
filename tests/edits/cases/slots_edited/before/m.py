class A:
    __slots__ = ("x", "y")
def f():
    a = A()
    a.y = 1
    return a.y
