def make():
    return [lambda k=k: k for k in range(3)]
def f():
    return [one() for one in make()]
