def h():
    yield 1
def f():
    return type(h()).__name__
