class Price:
    def __round__(self, n=None):
        return 11
def f():
    return round(Price())
