DEBUG = False
def f():
    return 1
