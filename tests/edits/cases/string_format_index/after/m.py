from h1 import A
def f():
    return '{0[0].name}'.format([A])
