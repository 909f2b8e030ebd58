from h1 import *
from h2 import *
def f():
    return h()
