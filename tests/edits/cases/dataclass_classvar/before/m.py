from dataclasses import asdict, dataclass
from typing import ClassVar
@dataclass
class Point:
    x: int
    y: int = 0
def f():
    return asdict(Point(1))
