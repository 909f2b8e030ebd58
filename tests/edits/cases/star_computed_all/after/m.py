from pkg import *
def f():
    return g(), len([1])
