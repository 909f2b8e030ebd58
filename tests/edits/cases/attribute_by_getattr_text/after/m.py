class Box:
    x = 1
    size = 2
def f():
    return getattr(Box, 'size', None)
