from conv import converts
@converts
def h(x: float):
    return x
def f():
    return h(x="3")
