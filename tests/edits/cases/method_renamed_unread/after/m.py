class Box:
    def size(self):
        return 3
    def heft(self):
        return 4
def f():
    return Box().size()
