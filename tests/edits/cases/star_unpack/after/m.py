def f():
    *rest, first = [1, 2, 3]
    return first, rest
