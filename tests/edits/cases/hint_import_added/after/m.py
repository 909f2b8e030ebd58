from collections.abc import Sequence
def h(xs: Sequence[int]):
    return sum(xs)
def f():
    return h([1])
