from pkg.more import N
def f():
    return N
