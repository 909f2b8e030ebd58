def h(a, *b, c=1, **d):
    return a, b, c, d
