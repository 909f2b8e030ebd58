from .. import X
def g():
    return X
