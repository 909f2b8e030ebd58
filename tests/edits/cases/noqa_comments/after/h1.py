class Box:
    def __init__(self, n):
        self.n = n
    def size(self):
        return self.n
def scale(n, by=2):
    return n * by
