ORDER = slice(None, None, -1)
def f():
    return [1, 2, 3][ORDER]
