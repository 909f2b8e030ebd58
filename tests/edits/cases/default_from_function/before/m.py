def size():
    return 4
def h(n=size()):
    return n
def f():
    return h()
