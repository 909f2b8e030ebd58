import tpkg
def f():
    return tpkg.N
