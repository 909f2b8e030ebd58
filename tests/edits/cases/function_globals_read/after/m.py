LIMIT = 2
def g():
    pass
def f():
    return g.__globals__["LIMIT"]
