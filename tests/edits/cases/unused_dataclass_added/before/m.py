from dataclasses import dataclass
@dataclass
class A:
    x: int = 1
def f():
    return A().x
