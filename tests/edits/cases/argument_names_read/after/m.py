import inspect
def tool(b):
    return b
def f():
    return list(inspect.signature(tool).parameters)
