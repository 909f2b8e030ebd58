CFG = {"a": 1, "b": 2}
del CFG["b"]
def f():
    return sorted(CFG)
