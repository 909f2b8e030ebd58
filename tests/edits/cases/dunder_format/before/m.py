class A:
    def __format__(self, spec):
        return "a" + spec
def f():
    return f"{A():x}"
