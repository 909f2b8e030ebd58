X = '\ud801'
def f():
    return ascii(X)
