def h(d):
    del d["a"]
    return d
def f():
    return h({"a": 1, "b": 2})
