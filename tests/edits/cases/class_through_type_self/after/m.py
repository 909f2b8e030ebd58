class Box:
    SCALE = 3
    def size(self):
        return type(self).SCALE
def f():
    return Box().size()
