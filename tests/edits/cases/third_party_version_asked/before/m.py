from importlib.metadata import version
def f():
    return version("tpkg")
