import dataclasses
class A:
    x: int = 1
A = dataclasses.dataclass(A)
def f():
    return repr(A())
