class A:
    def __str__(self):
        return "b"
def f():
    return "%s" % A()
