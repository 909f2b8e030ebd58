class A:
    def __init__(self, n):
        self.n = n
    def __lt__(self, other):
        return self.n < other.n
def f():
    return [a.n for a in sorted([A(2), A(1)])]
