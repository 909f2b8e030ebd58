X = b'a'
def f():
    return X
