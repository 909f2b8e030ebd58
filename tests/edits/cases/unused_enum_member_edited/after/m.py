from enum import Enum
class A(Enum):
    X = 1
class B(Enum):
    Y = 2
def f():
    return A.X.value
