import dataclasses
class A:
    x: int = 1
    y: int = 2
A = dataclasses.dataclass(A)
def f():
    return repr(A())
