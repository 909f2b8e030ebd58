import os
def f():
    return os.path.isdir(os.path.join(os.path.dirname(__file__), "data"))
