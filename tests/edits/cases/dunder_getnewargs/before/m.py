import copy
class Pair(tuple):
    def __new__(cls, a=0, b=0):
        return super().__new__(cls, (a, b))
    def __getnewargs__(self):
        return (self[0], 1)
def f():
    return copy.copy(Pair(1, 2))
