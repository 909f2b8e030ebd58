class Box:
    n = 0
    @property
    def size(self):
        return self.n
    @size.deleter
    def size(self):
        self.n = 8
def f():
    box = Box()
    del box.size
    return box.size
