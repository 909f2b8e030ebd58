from dataclasses import dataclass
@dataclass
class Point:
    x: int
def f():
    return Point(1) == Point(1)
