from h1 import b, a
def f():
    return a() + b()
