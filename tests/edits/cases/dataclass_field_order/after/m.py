from dataclasses import astuple, dataclass
@dataclass
class P:
    y: int = 2
    x: int = 1
def f():
    return astuple(P())
