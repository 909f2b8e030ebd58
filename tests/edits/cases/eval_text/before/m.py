def h(x):
    return x * 2
def f():
    return eval("h(4)")
