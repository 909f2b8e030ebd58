LIMIT = 1
def g():
    pass
def f():
    return g.__globals__["LIMIT"]
