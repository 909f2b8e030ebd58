class Box:
    def __size(self):
        return 4
def f():
    return Box()._Box__size()
