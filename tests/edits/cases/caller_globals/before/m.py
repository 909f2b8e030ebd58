from h1 import limit
LIMIT = 1
def f():
    return limit()
