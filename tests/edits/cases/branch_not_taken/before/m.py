import h1
def f(deep=False):
    if deep:
        return h1.rare()
    return 0
