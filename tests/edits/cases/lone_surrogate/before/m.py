X = '\ud800'
def f():
    return ascii(X)
