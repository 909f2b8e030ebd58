class Key:
    def __init__(self, a, b):
        self.a, self.b = a, b
    def __hash__(self):
        return hash(self.a)
    def __eq__(self, other):
        return (self.a, self.b) == (other.a, other.b)
def f():
    return len({Key(1, 1), Key(1, 2)})
