N = 0
def bump():
    global N
    N += 2
def f():
    bump()
    return N
