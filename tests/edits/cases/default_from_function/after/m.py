def size():
    return 5
def h(n=size()):
    return n
def f():
    return h()
