def loud(fn):
    return lambda: fn().upper()
def h():
    return "a"
def f():
    return h()
