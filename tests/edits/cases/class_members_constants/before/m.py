class A:
    X = 1
    Y = 2
def f():
    return {name: value for name, value in A.__dict__.items() if name.isupper()}
