def field(n):
    return n * 2
