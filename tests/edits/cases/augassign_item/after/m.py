CFG = {"n": 1}
CFG["n"] += 2
def f():
    return CFG["n"]
