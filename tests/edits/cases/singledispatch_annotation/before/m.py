from functools import singledispatch
@singledispatch
def show(x):
    return "object"
@show.register
def _(x: int):
    return "number"
def f():
    return show(3)
