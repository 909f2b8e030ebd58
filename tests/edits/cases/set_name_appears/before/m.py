class Field:
    name = ""

class A:
    x = Field()
def f():
    return A.__dict__["x"].name
