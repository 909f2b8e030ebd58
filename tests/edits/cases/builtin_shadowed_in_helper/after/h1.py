def h(xs):
    return sorted(xs)
def sorted(xs):
    return list(xs)

