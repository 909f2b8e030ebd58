class Box:
    def size(self):
        return 3
    @staticmethod
    def color():
        return 1
    def weight(self):
        return 4
def f():
    return Box().size()
