from abc import ABC, abstractmethod
class Base(ABC):
    @abstractmethod
    def size(self): ...
    @abstractmethod
    def weight(self): ...
class Box(Base):
    def size(self):
        return 3
def f():
    return Box().size()
