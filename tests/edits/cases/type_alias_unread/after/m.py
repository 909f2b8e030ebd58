from typing import Union
Number = Union[int, float, str]
def f(x: Number = 1) -> Number:
    return x
