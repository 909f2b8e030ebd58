from . import SCALE
def f():
    return SCALE
