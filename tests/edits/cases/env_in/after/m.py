import os
def f():
    return "ZZ_DEBUG" in os.environ
