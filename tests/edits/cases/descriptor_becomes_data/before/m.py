class Field:
    def __get__(self, obj, owner):
        return "field"

class A:
    x = Field()
def f():
    a = A()
    a.__dict__["x"] = "own"
    return a.x
