from dataclasses import dataclass
@dataclass
class P:
    x: int
def f():
    return P(1).x
