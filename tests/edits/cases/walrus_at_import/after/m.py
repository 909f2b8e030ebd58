if (SIZE := len("abc")) > 1:
    pass
def f():
    return SIZE
