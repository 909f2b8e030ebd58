class Box(object):
    size = 3
def f():
    return Box.size
