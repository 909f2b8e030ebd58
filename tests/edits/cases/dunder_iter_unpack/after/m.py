class A:
    def __iter__(self):
        return iter((1, 3))
def f():
    a, b = A()
    return a, b
