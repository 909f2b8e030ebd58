class A:
    def __contains__(self, x):
        return x == 1
def f():
    return 1 in A()
