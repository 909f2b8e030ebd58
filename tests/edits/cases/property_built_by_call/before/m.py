class Box:
    def _get(self):
        return 3
    size = property(_get)
def f():
    return Box().size
