class Meta(type):
    @classmethod
    def __prepare__(mcs, name, bases):
        return {"given": 2}
class A(metaclass=Meta):
    n = given + 1
def f():
    return A.n
