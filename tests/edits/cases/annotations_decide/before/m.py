def g(n: int):
    return n
def f():
    return g(*[kind('3') for kind in g.__annotations__.values()])
