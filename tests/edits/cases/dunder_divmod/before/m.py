class N:
    def __divmod__(self, other):
        return (1, 2)
def f():
    return divmod(N(), 3)
