class A:
    def __new__(cls):
        return 5
def f():
    return type(A()).__name__
