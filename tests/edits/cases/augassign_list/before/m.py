XS = [1]
YS = XS
YS += [2]
def f():
    return XS
