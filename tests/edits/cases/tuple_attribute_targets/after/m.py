class C:
    a = b = 0
C.a, C.b = 2, 1
def f():
    return C.a
