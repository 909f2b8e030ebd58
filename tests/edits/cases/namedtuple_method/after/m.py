from typing import NamedTuple
class Point(NamedTuple):
    x: int
    y: int = 2
    def total(self):
        return self.x * self.y
def f():
    return Point(1).total()
