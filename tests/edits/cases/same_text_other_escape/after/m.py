X = 'a\x09b'
def f():
    return X
