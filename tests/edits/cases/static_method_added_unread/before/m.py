class Box:
    def size(self):
        return 3
    def weight(self):
        return 4
def f():
    return Box().size()
