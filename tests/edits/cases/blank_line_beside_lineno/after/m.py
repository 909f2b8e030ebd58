import sys
def where():
    return sys._getframe(1).f_lineno


def f():
    return 1
