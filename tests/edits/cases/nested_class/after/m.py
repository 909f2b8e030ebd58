class A:
    class Meta:
        order = 2
def f():
    return A.Meta.order
