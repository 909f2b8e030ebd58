LOG = []
def g(n):
    LOG.append(n)
    return n
def f():
    found = (g(n) for n in range(2))
    return list(LOG)
