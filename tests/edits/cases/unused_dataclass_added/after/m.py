from dataclasses import dataclass
@dataclass
class A:
    x: int = 1
@dataclass
class B:
    y: int = 2
def f():
    return A().x
