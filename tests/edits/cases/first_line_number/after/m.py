# a comment
def h():
    return 1
def f():
    return h.__code__.co_firstlineno
