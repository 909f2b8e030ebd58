class Box:
    def _get(self):
        return 4
    size = property(_get)
def f():
    return Box().size
