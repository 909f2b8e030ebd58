import patch
import h1
def f():
    return h1.SIZE
