import setup
from shapes import Shape, Square
def f():
    return isinstance(Square(), Shape)
