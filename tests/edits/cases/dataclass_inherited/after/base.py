from dataclasses import dataclass
@dataclass
class Base:
    a: int = 1
    b: int = 2

