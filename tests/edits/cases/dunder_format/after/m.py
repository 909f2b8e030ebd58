class A:
    def __format__(self, spec):
        return "b" + spec
def f():
    return f"{A():x}"
