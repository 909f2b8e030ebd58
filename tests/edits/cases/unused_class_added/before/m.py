class A:
    x = 1
def f():
    return A.x
