class A:
    pass

def f():
    return getattr(A(), "size", None)
