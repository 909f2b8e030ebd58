import importlib
import h1
def f():
    return importlib.reload(h1).X
