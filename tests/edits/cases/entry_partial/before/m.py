import functools
def h(k):
    return k * 2
f = functools.partial(h, 1)
