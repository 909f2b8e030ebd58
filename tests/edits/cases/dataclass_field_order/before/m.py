from dataclasses import astuple, dataclass
@dataclass
class P:
    x: int = 1
    y: int = 2
def f():
    return astuple(P())
