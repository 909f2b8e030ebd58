import types
class Box:
    pass
def size(self):
    return 3
BOX = Box()
BOX.size = types.MethodType(size, BOX)
def f():
    return BOX.size()
