from typing import overload
def g(x):
    return x
def f():
    return g(1)
