class A:
    def __dir__(self):
        return ["b"]
def f():
    return dir(A())
