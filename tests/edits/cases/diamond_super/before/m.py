class A:
    def go(self):
        return ["A"]
class B(A):
    def go(self):
        return ["B", *super().go()]
class D(A):
    def go(self):
        return ["D", *super().go()]
class E(B, D):
    pass
def f():
    return E().go()
