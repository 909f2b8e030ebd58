h = float
from h1 import *
def f():
    return h(3)
