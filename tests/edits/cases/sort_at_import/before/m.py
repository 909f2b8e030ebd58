import keys
XS = [2, 1, 3]
XS.sort(key=keys.key)
def f():
    return XS
