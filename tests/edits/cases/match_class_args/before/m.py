class P:
    __match_args__ = ("x", "y")
    def __init__(self):
        self.x, self.y = 1, 2
def f():
    match P():
        case P(a, b):
            return a, b
