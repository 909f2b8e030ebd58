import inspect
def tool(a):
    return a
def f():
    return list(inspect.signature(tool).parameters)
