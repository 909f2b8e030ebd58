def h():
    return [1]
def f():
    return type(h()).__name__
