CFG = {"a": 1, "b": 2}
CFG.pop("a")
def f():
    return sorted(CFG)
