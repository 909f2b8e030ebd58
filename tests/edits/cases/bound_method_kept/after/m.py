class Box:
    def size(self):
        return 4
SIZE = Box().size
def f():
    return SIZE()
