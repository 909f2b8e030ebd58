import os
def f():
    os.environ["ZZ_MODE"] = "fixed"
    return os.environ["ZZ_MODE"]
