class Box:
    depth: int = 1
    color: str
    def size(self):
        return 3 * self.depth
def f():
    return Box().size()
