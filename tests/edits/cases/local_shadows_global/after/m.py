size = 2
def f():
    size = 5
    return size
