from h1 import limit
LIMIT = 2
def f():
    return limit()
