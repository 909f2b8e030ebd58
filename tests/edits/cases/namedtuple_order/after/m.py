from typing import NamedTuple
class P(NamedTuple):
    y: int = 2
    x: int = 1
def f():
    return tuple(P())
