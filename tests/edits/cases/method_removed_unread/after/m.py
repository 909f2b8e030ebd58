class Box:
    def size(self):
        return 3
def f():
    return Box().size()
