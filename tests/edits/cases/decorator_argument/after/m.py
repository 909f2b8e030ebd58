def times(n):
    def deco(fn):
        return lambda *a: fn(*a) * n
    return deco
@times(3)
def h():
    return 1
def f():
    return h()
