LOG = []
class A:
    def __del__(self):
        LOG.append(2)
def f():
    a = A()
    del a
    return LOG
