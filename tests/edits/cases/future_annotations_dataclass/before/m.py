from dataclasses import dataclass, fields
@dataclass
class P:
    x: int = 1
def f():
    return type(fields(P)[0].type).__name__
