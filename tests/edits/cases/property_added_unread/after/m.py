class Box:
    def size(self):
        return 3
    @property
    def color(self):
        return 1
    def weight(self):
        return 4
def f():
    return Box().size()
