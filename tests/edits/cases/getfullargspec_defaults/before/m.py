import inspect
def g(x, y=1):
    pass
def f():
    return inspect.getfullargspec(g).defaults
