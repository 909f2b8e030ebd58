from fill import fill
CFG = {}
fill(CFG)
def f():
    return CFG["n"]
