from enum import Enum
class Color(str, Enum):
    RED = "red"
def f():
    return Color.RED == "red"
