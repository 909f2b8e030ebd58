from dataclasses import InitVar, asdict, dataclass
@dataclass
class Point:
    x: int
    y: int = 0
def f():
    return asdict(Point(1, 2))
