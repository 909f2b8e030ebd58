import helper
def f():
    import sys
    return sys.modules["conf"].A
