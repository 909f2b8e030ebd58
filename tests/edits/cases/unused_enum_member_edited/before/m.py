from enum import Enum
class A(Enum):
    X = 1
class B(Enum):
    Y = 1
def f():
    return A.X.value
