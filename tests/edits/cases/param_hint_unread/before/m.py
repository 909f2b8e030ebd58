def h(x: int) -> int:
    return x
def f():
    return h(1)
