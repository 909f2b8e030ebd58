def make():
    return [lambda: k for k in range(3)]
def f():
    return [one() for one in make()]
