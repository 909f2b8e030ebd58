import importlib.util
def f():
    return importlib.util.find_spec("helper") is not None
