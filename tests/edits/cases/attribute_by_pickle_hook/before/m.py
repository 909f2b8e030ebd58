import copy
class Box:
    x = 1
def f():
    return copy.copy(Box()).x
