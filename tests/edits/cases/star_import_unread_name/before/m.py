from one import X
from two import *
def f():
    return X
