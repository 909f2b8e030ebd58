def count(xs):
    return len(xs)
def clear(xs):
    xs.clear()
