import inspect
def g():
    pass
def f():
    return inspect.iscoroutinefunction(g)
