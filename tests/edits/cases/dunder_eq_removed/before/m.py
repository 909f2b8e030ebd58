class Key:
    def __eq__(self, other):
        return True
    __hash__ = None
def f():
    return Key() == Key()
