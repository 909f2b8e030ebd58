X = float("inf")
def f():
    return X == X
