from enum import Enum
class Kind(Enum):
    A = 1
    B = 2

def f():
    return [k.name for k in Kind]
