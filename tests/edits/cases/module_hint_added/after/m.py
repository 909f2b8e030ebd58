LIMIT: int = 1
def f():
    return LIMIT
