def h():
    height = 3
    return sorted(locals())
def f():
    return h()
