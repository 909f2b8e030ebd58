class A:
    X = 1
    Y = 2
def f():
    return sorted(name for name in vars(A) if name.isupper())
