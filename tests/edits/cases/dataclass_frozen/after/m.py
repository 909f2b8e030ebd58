from dataclasses import dataclass
@dataclass(frozen=True)
class P:
    x: int = 1
def f():
    p = P()
    p.x = 2
    return p.x
