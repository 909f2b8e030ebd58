import os
def f():
    return os.environb[b"ZZ_B"]
