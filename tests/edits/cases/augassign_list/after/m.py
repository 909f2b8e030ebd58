XS = [1]
YS = XS
YS += [3]
def f():
    return XS
