import h1
class A:
    x = h1.field(2)
def f():
    return A().x
