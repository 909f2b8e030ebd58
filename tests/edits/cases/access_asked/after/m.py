import os
def f():
    return os.access(os.path.join(os.path.dirname(__file__), "flag"), os.R_OK)
