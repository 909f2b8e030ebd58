class Box:
    __slots__ = ("b", "a")
    def __init__(self):
        self.a, self.b = 1, 2
def f():
    box = Box()
    return [getattr(box, name) for name in box.__slots__]
