B = 2
A = 1
def f():
    return A - B
