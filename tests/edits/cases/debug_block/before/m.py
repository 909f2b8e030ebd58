X = 0
if __debug__:
    X = 1
def f():
    return X
