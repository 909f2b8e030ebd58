from enum import Enum, auto
class Kind(Enum):
    B = auto()
    A = auto()
def f():
    return Kind.A.value
