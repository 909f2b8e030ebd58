import os
def f():
    return os.getenv("ZZ_LEVEL", "low")
