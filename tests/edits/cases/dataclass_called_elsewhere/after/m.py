from dataclasses import dataclass, asdict
class Plain:
    x: int = 1
    y: int = 2
Row = dataclass(Plain)
def f():
    return asdict(Row())
