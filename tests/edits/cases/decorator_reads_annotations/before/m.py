from conv import converts
@converts
def h(x: int):
    return x
def f():
    return h(x="3")
