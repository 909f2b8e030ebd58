LOG = []
def numbers():
    try:
        yield 1
        yield 2
    finally:
        LOG.append("end")
def f():
    g = numbers()
    next(g)
    g.close()
    return LOG
