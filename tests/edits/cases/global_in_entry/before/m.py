N = 0
def bump():
    global N
    N += 1
def f():
    bump()
    return N
