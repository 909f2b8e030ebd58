import atexit
atexit.register(print, "good bye")
def f():
    return 1
