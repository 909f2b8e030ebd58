class Box:
    depth: int = 1
    def size(self):
        return 3 * self.depth
def f():
    return Box().size()
