from typing import TypeVar
T = TypeVar('T')
def g(x: T) -> T:
    return x
def f():
    return g(1)
