from functools import singledispatch
@singledispatch
def show(x):
    return "any"
@show.register(int)
def _(x):
    return "int"
@show.register(bool)
def _(x):
    return "bool"
def f():
    return show(True)
