from dataclasses import dataclass, field
@dataclass
class Point:
    x: int
    y: int = field(default=0)
def f():
    return Point(1, 1) == Point(1, 2)
