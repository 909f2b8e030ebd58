def h(x):
    return 0 < x < 10
def f():
    return h(10)
