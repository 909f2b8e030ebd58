import pickle
class A:
    def __init__(self):
        self.n = 1
    def __setstate__(self, state):
        self.n = state["n"] + 2
def f():
    return pickle.loads(pickle.dumps(A())).n
