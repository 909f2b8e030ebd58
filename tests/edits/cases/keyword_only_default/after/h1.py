def h(x, *, scale=2):
    return x * scale
