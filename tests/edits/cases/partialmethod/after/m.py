from functools import partialmethod
class A:
    def set(self, value):
        return value
    on = partialmethod(set, True)
def f():
    return A().on()
