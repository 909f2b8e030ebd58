CFG = {"n": 1}
CFG["n"] += 1
def f():
    return CFG["n"]
