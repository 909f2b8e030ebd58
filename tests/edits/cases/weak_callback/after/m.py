import weakref
LOG = []
class A:
    pass
def gone():
    LOG.append(2)
def f():
    a = A()
    weakref.finalize(a, gone)
    del a
    return LOG
