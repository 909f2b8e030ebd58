from typing import NamedTuple
class P(NamedTuple):
    x: int = 1
    y: int = 2
def f():
    return tuple(P())
