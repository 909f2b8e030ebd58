import operator
class A:
    class b:
        c = 2
def f():
    return operator.attrgetter("b.c")(A)
