import inspect
import h1
def f():
    return inspect.getsource(h1.tool)
