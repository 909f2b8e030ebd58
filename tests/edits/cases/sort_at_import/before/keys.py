def key(x):
    return x
