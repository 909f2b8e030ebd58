class A:
    def __eq__(self, other):
        return True
    __hash__ = object.__hash__
def f():
    return len({A()})
