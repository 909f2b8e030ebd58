from dataclasses import asdict, dataclass
@dataclass
class Point:
    x: int = 0

    # across

    y: int = 1
def f():
    return asdict(Point())
