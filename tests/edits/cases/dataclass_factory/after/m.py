import h1
from dataclasses import dataclass, field
@dataclass
class P:
    xs: list = field(default_factory=h1.start)
def f():
    return P().xs
