class Box:
    def size(self):
        return 3
SIZE = Box().size
def f():
    return SIZE()
