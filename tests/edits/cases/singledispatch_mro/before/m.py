from functools import singledispatch
@singledispatch
def show(x):
    return "any"
@show.register(int)
def _(x):
    return "int"
def f():
    return show(True)
