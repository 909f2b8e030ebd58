CFG = {"a": 1, "b": 2}
del CFG["a"]
def f():
    return sorted(CFG)
