class Box:
    SCALE = 2
    def size(self):
        return type(self).SCALE
def f():
    return Box().size()
