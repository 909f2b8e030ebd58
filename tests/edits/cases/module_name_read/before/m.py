import h2
from h1 import h
def f():
    return h.__module__
