from who import caller
def h():
    return caller()
def f():
    return h()
