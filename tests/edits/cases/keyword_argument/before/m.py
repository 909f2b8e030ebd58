def f():
    return sorted([2, 3, 1], reverse=False)
