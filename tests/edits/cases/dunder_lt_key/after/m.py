class Item:
    def __init__(self, n):
        self.n = n
    def __lt__(self, other):
        return self.n > other.n
def f():
    return min(Item(3), Item(1)).n
