from enum import Enum
class Color(Enum):
    RED = 1
    BLUE = 2
def f():
    return list(Color)[0].name
