TABLE = {"a": lambda: 1, "b": lambda: 2}
def f():
    return TABLE["a"]()
