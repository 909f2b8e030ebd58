from meta import Meta
class A(metaclass=Meta):
    abc = 1
    xyz = 2
def f():
    return [n for n in A.fields if n[0] != "_"]
