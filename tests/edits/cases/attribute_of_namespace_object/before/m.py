class Box:
    x = 1
def f():
    return [name for name in type(Box()).__dict__ if name[0] != '_']
