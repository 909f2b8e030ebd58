def h(x):
    return None
def f():
    return h(1)
