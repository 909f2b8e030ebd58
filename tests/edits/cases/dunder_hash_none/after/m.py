class A:
    def __eq__(self, other):
        return True
def f():
    return len({A()})
