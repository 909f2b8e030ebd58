def h(x):
    y = x
    "a note"
    return y
def f():
    return h(1)
