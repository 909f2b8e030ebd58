from typing import Protocol, runtime_checkable
@runtime_checkable
class Closes(Protocol):
    def close(self): ...

class File:
    def close(self):
        return None
def f():
    return isinstance(File(), Closes)
