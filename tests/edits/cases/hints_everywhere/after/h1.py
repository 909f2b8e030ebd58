class Box:
    def __init__(self, n):
        self.n = n
    def size(self) -> int:
        return self.n
def scale(n: int, by: int = 2) -> int:
    return n * by
