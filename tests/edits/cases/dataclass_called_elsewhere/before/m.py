from dataclasses import dataclass, asdict
class Plain:
    x: int = 1
Row = dataclass(Plain)
def f():
    return asdict(Row())
