from enum import Enum
class Color(Enum):
    BLUE = 2
    RED = 1
def f():
    return list(Color)[0].name
