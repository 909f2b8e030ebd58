def f():
    first, *rest = [1, 2, 3]
    return first, rest
