def f(x=1):
    return repr(x)
