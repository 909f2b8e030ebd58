class Step:
    def __call__(self, x):
        return x + 1
step = Step()
