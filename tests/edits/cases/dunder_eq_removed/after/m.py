class Key:
    __hash__ = None
def f():
    return Key() == Key()
