from h1 import WHY
def f():
    raise ValueError(WHY)
