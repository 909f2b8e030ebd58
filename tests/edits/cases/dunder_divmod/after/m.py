class N:
    def __divmod__(self, other):
        return (2, 1)
def f():
    return divmod(N(), 3)
