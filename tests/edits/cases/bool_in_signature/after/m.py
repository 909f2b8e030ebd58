def f(x=True):
    return repr(x)
