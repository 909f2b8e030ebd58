X = ~0
def f():
    return X
