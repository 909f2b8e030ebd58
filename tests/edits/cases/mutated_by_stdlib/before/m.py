import operator
CFG = {}
operator.setitem(CFG, "n", 1)
def f():
    return CFG["n"]
