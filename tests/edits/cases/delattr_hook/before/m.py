class Box:
    n = 0
    def __delattr__(self, name):
        Box.n += 1
def f():
    box = Box()
    del box.x
    return Box.n
