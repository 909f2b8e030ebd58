from fields import Field
class A:
    x = Field()
def f():
    return A().x
