from typing import TypeVar
T = TypeVar('T', bound=int)
def g(x: T) -> T:
    return x
def f():
    return g(1)
