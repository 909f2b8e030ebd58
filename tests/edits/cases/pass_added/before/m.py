def h(x):
    return x
def f():
    return h(1)
