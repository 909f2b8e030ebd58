class A:
    def __repr__(self):
        return "A"
def f():
    return str([A()])
