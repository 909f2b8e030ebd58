class X:
    n = 1
class Y:
    n = 2
class Choice:
    def __mro_entries__(self, bases):
        return (X,)
class A(Choice()):
    pass
def f():
    return A.n
