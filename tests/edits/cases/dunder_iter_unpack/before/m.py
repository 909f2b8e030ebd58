class A:
    def __iter__(self):
        return iter((1, 2))
def f():
    a, b = A()
    return a, b
