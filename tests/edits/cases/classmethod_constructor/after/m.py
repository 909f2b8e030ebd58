class A:
    def __init__(self, n):
        self.n = n
    @classmethod
    def of(cls, text):
        return cls(len(text) + 1)
def f():
    return A.of("abc").n
