import patch
from shape import Shape
def f():
    return Shape().area()
