A = 1
B = A
A = 2
def f():
    return B
