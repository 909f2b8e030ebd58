class Base:
    def __init__(self, n=2):
        self.n = n
