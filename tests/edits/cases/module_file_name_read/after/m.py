import os
# two
def f():
    return os.path.basename(__file__)
