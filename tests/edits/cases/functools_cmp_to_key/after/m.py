import functools
def compare(a, b):
    return b - a
def f():
    return sorted([3, 1, 2], key=functools.cmp_to_key(compare))
