from typing import TypedDict
class Row(TypedDict, total=False):
    x: int
def f():
    return sorted(Row.__required_keys__)
