class A:
    @property
    def size(self):
        return 2
def f():
    return "{0.size}".format(A())
