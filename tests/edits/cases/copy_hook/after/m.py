import copy
class A:
    x = 1
    def __deepcopy__(self, memo):
        a = A()
        a.x = 3
        return a
def f():
    return copy.deepcopy([A()])[0].x
