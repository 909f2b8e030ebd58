from who import caller
def g():
    return caller()
def f():
    return g()
