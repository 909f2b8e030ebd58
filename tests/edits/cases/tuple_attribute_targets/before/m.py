class C:
    a = b = 0
C.a, C.b = 1, 2
def f():
    return C.a
