class A:
    @property
    def size(self):
        return 1
def f():
    return "{0.size}".format(A())
