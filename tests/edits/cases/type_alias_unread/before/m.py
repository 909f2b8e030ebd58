from typing import Union
Number = Union[int, float]
def f(x: Number = 1) -> Number:
    return x
