class A:
    n = 0

def f():
    return "yes" if A() else "no"
