def echo():
    got = yield 0
    while True:
        got = yield got * 3
def f():
    g = echo()
    next(g)
    return g.send(5)
