CFG = {"a": 1, "b": 2}
CFG.pop("b")
def f():
    return sorted(CFG)
