class A:
    tag = 2
    def go(self):
        return __class__.tag
class B(A):
    tag = 9
def f():
    return B().go()
