from abc import ABC
class Shape(ABC):
    pass
class Square:
    pass
