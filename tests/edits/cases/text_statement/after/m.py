def h(x):
    y = x
    "another note"
    return y
def f():
    return h(1)
