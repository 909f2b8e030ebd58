ALLOWED = {1}
ALLOWED |= {3}
def f():
    return 2 in ALLOWED
