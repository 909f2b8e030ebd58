def setup():
    global LIMIT
    LIMIT = 1
setup()
def f():
    return LIMIT
