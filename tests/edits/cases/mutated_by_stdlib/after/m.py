import operator
CFG = {}
operator.setitem(CFG, "n", 2)
def f():
    return CFG["n"]
