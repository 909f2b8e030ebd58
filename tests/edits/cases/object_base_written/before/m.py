class Box:
    size = 3
def f():
    return Box.size
