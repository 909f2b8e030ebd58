from pkg import part
def f():
    return getattr(part, 'X', part)
