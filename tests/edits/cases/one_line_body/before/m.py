def h(x):
    return x + 1
def f():
    return h(1)
