from dataclasses import dataclass
@dataclass(order=True)
class P:
    x: int
def f():
    return P(1) < P(2)
