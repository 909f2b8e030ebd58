class Box:
    def __setattr__(self, name, value):
        super().__setattr__(name, value * 2)
def f():
    box = Box()
    box.size = 3
    return box.size
