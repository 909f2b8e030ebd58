def echo():
    got = yield 0
    while True:
        got = yield got * 2
def f():
    g = echo()
    next(g)
    return g.send(5)
