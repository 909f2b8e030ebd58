def f():
    return list(zip([[1, 2], [3, 4]]))
