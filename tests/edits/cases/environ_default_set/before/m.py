import os
os.environ.setdefault("ZZ_MODE", "a")
def f():
    return os.environ["ZZ_MODE"]
