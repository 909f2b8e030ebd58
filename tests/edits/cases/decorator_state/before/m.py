from h1 import counted, COUNTS
@counted
def g():
    return 1
def f():
    g()
    g()
    return COUNTS
