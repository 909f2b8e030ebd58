class A:
    pass
def f():
    return type(A()).__name__
