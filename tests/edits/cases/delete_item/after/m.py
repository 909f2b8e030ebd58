def h(d):
    del d["b"]
    return d
def f():
    return h({"a": 1, "b": 2})
