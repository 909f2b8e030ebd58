from pkg import part
def f():
    return part.X
