from functools import partialmethod
class A:
    def set(self, value):
        return value
    on = partialmethod(set, 1)
def f():
    return A().on()
