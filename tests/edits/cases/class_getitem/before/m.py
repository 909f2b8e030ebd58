class Box:
    def __class_getitem__(cls, item):
        return (item, 1)
def f():
    return Box["a"]
