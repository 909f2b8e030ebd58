class A:
    pass
    def __eq__(self, other):
        return True

def f():
    return A() == A()
