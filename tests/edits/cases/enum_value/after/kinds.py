from enum import Enum
class Kind(Enum):
    A = "x"
    B = "b"
