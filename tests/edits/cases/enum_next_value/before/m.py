from enum import Enum, auto
class Named(Enum):
    def _generate_next_value_(name, start, count, last):
        return name.lower()
class Kind(Named):
    A = auto()
def f():
    return Kind.A.value
