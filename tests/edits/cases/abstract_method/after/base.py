from abc import ABC, abstractmethod
class Base(ABC):
    def go(self):
        return 1
    @abstractmethod
    def stop(self): ...

