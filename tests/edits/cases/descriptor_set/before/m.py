class Clamped:
    def __set_name__(self, owner, name):
        self.name = "_" + name
    def __get__(self, instance, owner):
        return getattr(instance, self.name)
    def __set__(self, instance, value):
        setattr(instance, self.name, min(value, 10))
class Box:
    size = Clamped()
    def __init__(self, size):
        self.size = size
def f():
    return Box(50).size
