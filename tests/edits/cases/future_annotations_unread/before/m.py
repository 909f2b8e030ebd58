def h(x: int):
    return x
def f():
    return h(1)
