from dataclasses import dataclass
@dataclass(eq=False)
class Point:
    x: int
def f():
    return Point(1) == Point(1)
