class A:
    def __init__(self):
        self.xs = []
    def __iadd__(self, x):
        self.xs.append(x * 2)
        return self
def f():
    a = A()
    a += 1
    return a.xs
