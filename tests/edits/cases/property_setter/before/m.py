class A:
    @property
    def v(self):
        return self._v
    @v.setter
    def v(self, value):
        self._v = value + 1
def f():
    a = A()
    a.v = 1
    return a.v
