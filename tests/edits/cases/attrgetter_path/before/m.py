import operator
class A:
    class b:
        c = 1
def f():
    return operator.attrgetter("b.c")(A)
