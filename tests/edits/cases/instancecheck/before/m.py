class Meta(type):
    def __instancecheck__(cls, x):
        return x == 1
class A(metaclass=Meta):
    pass
def f():
    return isinstance(1, A)
