class Box:
    def __init__(self, n):
        self.n = n
    def size(self):
        return self.n
# ---- scaling ----


def scale(n, by=2):
    return n * by
