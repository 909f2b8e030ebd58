ALLOWED = {1}
ALLOWED |= {2}
def f():
    return 2 in ALLOWED
