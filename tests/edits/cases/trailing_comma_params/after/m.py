def h(a, b,):
    return a + b
def f():
    return h(1, 2)
