import a
def f():
    return a.high()
