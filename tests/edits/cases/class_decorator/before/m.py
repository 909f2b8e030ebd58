from h1 import tagged
@tagged
class A:
    pass
def f():
    return A.tag
