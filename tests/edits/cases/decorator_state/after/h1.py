COUNTS = {}
def counted(fn):
    def inner(*a):
        COUNTS[fn.__name__] = COUNTS.get(fn.__name__, 0) + 2
        return fn(*a)
    return inner
