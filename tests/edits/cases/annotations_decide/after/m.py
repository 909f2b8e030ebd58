def g(n: float):
    return n
def f():
    return g(*[kind('3') for kind in g.__annotations__.values()])
