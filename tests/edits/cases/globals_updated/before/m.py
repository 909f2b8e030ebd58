globals().update(LIMIT=1)
def f():
    return LIMIT
