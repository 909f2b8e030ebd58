class B:
    pass
def f():
    return type(B()).__name__
