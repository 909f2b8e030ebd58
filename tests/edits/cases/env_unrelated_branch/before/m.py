import os
def other():
    return os.environ["ZZ_X"]
def f():
    return 1
