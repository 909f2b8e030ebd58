from dataclasses import dataclass
@dataclass(kw_only=True)
class P:
    x: int
def f():
    return P(1).x
