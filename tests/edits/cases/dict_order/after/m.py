def f():
    return list({"b": 2, "a": 1})
