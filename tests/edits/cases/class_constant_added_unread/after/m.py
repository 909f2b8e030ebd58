class Box:
    depth = 1
    color = 'red'
    def size(self):
        return 3 * self.depth
def f():
    return Box().size()
