from dataclasses import dataclass
@dataclass
class P:
    x: int = 1
    def __post_init__(self):
        self.x += 1
def f():
    return P().x
