def h(x: float) -> int:
    return x
def f():
    return h(1)
