for STEP in range(3):
    pass
def f():
    return STEP
