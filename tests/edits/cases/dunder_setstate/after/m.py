import copy
class Box:
    def __init__(self):
        self.x = 1
    def __setstate__(self, state):
        self.x = state["x"] + 2
def f():
    return copy.copy(Box()).x
