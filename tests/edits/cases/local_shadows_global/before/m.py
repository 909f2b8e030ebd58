size = 1
def f():
    size = 5
    return size
