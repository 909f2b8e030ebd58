def field(n):
    return n * 3
