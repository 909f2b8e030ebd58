class Count:
    def __init__(self, fn):
        self.fn = fn
        self.n = 0
    def __call__(self, *a):
        self.n += 1
        return self.fn(*a), self.n
@Count
def h():
    return "x"
def f():
    return h()
