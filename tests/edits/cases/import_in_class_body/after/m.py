class A:
    from h1 import X
def f():
    return A.X
