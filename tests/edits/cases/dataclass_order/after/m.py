from dataclasses import dataclass
@dataclass(order=False)
class P:
    x: int
def f():
    return P(1) < P(2)
