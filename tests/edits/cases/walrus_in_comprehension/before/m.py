def h(xs):
    any((last := x) > 1 for x in xs)
    return last
def f():
    return h([1, 2, 3])
