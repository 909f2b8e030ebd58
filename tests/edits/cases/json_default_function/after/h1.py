def plain(x):
    return sorted(x)[::-1]
