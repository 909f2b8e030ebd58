from b import SIZE
LIMIT = SIZE + 1
def f():
    return LIMIT
