from dataclasses import dataclass
@dataclass(slots=True)
class Point:
    x: int = 0
def f():
    point = Point()
    try:
        point.z = 1
    except AttributeError:
        return "refused"
    return "taken"
