class A:
    def __setattr__(self, name, value):
        object.__setattr__(self, name, value + 1)
def f():
    a = A()
    a.x = 1
    return a.x
