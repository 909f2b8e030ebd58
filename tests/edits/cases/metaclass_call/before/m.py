from meta import Meta
class A(metaclass=Meta):
    pass
def f():
    return A() is A()
