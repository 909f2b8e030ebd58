def count(xs):
    return len(xs) + 1
def clear(xs):
    xs.clear()
