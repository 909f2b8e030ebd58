class A:
    def __new__(cls):
        return object.__new__(cls)
def f():
    return type(A()).__name__
