import inspect
def f():
    return inspect.stack()[0].lineno
