import os
def f():
    return os.environ.get("ZZ_LEVEL", "high")
