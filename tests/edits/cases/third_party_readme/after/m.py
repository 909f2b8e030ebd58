import tdep
def f():
    return tdep.h()
