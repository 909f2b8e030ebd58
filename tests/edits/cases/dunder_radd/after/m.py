class A:
    def __radd__(self, other):
        return other + 2
def f():
    return sum([A()], 3)
