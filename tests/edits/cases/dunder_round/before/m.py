class Price:
    def __round__(self, n=None):
        return 10
def f():
    return round(Price())
