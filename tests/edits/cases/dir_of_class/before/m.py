class A:
    def __dir__(self):
        return ["a"]
def f():
    return dir(A())
