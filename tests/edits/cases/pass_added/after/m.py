def h(x):
    pass
    return x
def f():
    return h(1)
