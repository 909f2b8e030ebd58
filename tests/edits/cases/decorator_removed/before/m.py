def loud(fn):
    return lambda: fn().upper()
@loud
def h():
    return "a"
def f():
    return h()
