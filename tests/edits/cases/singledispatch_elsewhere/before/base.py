from functools import singledispatch
@singledispatch
def show(x):
    return "object"
