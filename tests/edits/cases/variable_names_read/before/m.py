def tool():
    a = 1
    return a
def f():
    return tool.__code__.co_varnames
