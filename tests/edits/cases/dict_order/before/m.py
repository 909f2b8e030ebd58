def f():
    return list({"a": 1, "b": 2})
