import os
os.environ.setdefault("ZZ_MODE", "b")
def f():
    return os.environ["ZZ_MODE"]
