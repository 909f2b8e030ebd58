X = bytearray(b'a')
def f():
    return X
