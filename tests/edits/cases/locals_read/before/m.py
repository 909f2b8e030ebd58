def h():
    width = 3
    return sorted(locals())
def f():
    return h()
