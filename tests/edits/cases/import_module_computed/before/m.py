import importlib
def load(name):
    return importlib.import_module(f"plug_{name}")
def f():
    return load("a").go()
