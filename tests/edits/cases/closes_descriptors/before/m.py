import os
from h1 import X
def f():
    os.dup2(1, 9)
    os.close(9)
    return X
