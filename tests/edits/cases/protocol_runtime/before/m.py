from typing import Protocol, runtime_checkable
@runtime_checkable
class Sized(Protocol):
    def size(self): ...
class Box:
    def size(self):
        return 1
def f():
    return isinstance(Box(), Sized)
