GET = lambda: __import__('h1').X
def f():
    return GET()
