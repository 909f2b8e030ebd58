import sys
import helper
def f():
    return sys.modules["conf"].A
