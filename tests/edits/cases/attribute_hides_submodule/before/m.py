from pkg import x
def f():
    return getattr(x, "n", x)
