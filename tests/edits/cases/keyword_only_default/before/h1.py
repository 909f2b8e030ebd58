def h(x, *, scale=1):
    return x * scale
