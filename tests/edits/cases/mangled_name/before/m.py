class Box:
    def __size(self):
        return 3
def f():
    return Box()._Box__size()
