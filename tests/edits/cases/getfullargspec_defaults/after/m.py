import inspect
def g(x, y=2):
    pass
def f():
    return inspect.getfullargspec(g).defaults
