def tool():
    b = 1
    return b
def f():
    return tool.__code__.co_varnames
