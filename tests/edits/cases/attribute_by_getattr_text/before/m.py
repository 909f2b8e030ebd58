class Box:
    x = 1
def f():
    return getattr(Box, 'size', None)
