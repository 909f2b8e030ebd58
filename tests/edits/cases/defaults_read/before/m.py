import h1
def f():
    return h1.tool.__defaults__
