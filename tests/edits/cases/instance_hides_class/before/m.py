class A:
    n = 1
    def __init__(self):
        self.n = 2
def f():
    return A().n
