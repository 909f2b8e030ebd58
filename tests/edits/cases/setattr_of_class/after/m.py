class A:
    def __setattr__(self, name, value):
        object.__setattr__(self, name, value + 2)
def f():
    a = A()
    a.x = 1
    return a.x
