LOG = []
class A:
    def __del__(self):
        LOG.append(1)
def f():
    a = A()
    del a
    return LOG
