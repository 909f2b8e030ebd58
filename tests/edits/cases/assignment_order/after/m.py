A = 1
A = 2
B = A
def f():
    return B
