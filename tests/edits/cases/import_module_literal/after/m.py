import importlib
def f():
    return importlib.import_module("h1").N
