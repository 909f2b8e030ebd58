X = 0
if __debug__:
    X = 2
def f():
    return X
