def h(x):
    if x == 1:
        return "a"
    else:
        if x == 2:
            return "b"
        else:
            return "c"
def f():
    return h(2)
