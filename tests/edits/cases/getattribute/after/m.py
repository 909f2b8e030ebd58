class A:
    x = 1
    def __getattribute__(self, name):
        return name
def f():
    return A().x
