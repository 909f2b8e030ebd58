from enum import Enum, auto
class Kind(Enum):
    A = auto()
    B = auto()
def f():
    return Kind.A.value
