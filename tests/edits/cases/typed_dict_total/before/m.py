from typing import TypedDict
class Row(TypedDict, total=True):
    x: int
def f():
    return sorted(Row.__required_keys__)
