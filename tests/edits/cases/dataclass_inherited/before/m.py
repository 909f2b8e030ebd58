from base import Base
from dataclasses import dataclass
@dataclass
class P(Base):
    c: int = 3
def f():
    return repr(P())
