from functools import singledispatchmethod
class A:
    @singledispatchmethod
    def go(self, x):
        return "object"
    @go.register
    def _(self, x: str):
        return "text"
def f():
    return A().go("a")
