import sys
def go_a():
    return 2
def f():
    return getattr(sys.modules[__name__], "go_" + "a")()
