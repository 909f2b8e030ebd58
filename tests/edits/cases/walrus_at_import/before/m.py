if (SIZE := len("ab")) > 1:
    pass
def f():
    return SIZE
