class Meta(type):
    def __subclasscheck__(cls, other):
        return hasattr(other, "length")
class Sized(metaclass=Meta):
    pass
class Box:
    size = 1
def f():
    return issubclass(Box, Sized)
