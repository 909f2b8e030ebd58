try:
    from h1 import fast as go
except ImportError:
    from h1 import slow as go
def f():
    return go()
