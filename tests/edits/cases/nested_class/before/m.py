class A:
    class Meta:
        order = 1
def f():
    return A.Meta.order
