def plain(x):
    return sorted(x)
