from typing import TypedDict
class Row(TypedDict, total=False):
    a: int
    b: str
def f():
    return sorted(Row.__optional_keys__)
