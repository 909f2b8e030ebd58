import os
def f():
    return "{ZZ_MODE}".format_map(os.environ)
