import atexit
atexit.register(print, "bye")
def f():
    return 1
