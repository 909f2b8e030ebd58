import tlib
def f():
    return tlib.g()
