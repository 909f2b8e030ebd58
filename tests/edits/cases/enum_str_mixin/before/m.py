from enum import Enum
class Color(Enum):
    RED = "red"
def f():
    return Color.RED == "red"
