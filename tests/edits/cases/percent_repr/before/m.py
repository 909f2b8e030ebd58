class A:
    def __str__(self):
        return "a"
def f():
    return "%s" % A()
