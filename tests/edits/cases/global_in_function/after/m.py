def setup():
    global LIMIT
    LIMIT = 2
setup()
def f():
    return LIMIT
