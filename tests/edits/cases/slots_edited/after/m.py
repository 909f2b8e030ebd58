class A:
    __slots__ = ("x",)
def f():
    a = A()
    a.y = 1
    return a.y
