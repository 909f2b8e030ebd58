class A:
    x = 1
class B(A):
    x = 2
    def __init_subclass__(cls):
        raise TypeError
def f():
    return A.x
