import conf
def f():
    return conf.__annotations__["x"].__name__
