import tdep
def g():
    return tdep.h()
