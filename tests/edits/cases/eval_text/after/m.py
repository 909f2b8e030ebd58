def h(x):
    return x * 3
def f():
    return eval("h(4)")
