from enum import Enum
class Kind(Enum):
    A = "a"
    B = "b"
