def h(x):
    return
def f():
    return h(1)
