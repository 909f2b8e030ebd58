class Base:
    def __init__(self, n=1):
        self.n = n
