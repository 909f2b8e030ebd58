TABLE = {"a": lambda: 1, "b": lambda: 3}
def f():
    return TABLE["a"]()
