import inspect
import h1
def f():
    return inspect.isgeneratorfunction(h1.h)
