from enum import Enum
class Color(Enum):
    RED = 1
    ROSE = 1
def f():
    return [color.name for color in Color]
