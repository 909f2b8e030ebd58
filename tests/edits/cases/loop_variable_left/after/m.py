for STEP in range(4):
    pass
def f():
    return STEP
