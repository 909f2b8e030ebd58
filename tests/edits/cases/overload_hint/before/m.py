from typing import overload
@overload
def h(x: int) -> int: ...
@overload
def h(x: str) -> str: ...
def h(x):
    return x
def f():
    return h(1)
