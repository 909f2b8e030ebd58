def h(a, b=1, /, **more):
    return a, b, more
def f():
    return h(1, b=2)
