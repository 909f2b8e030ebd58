class Field:
    name = ""
    def __set_name__(self, owner, name):
        self.name = name

class A:
    x = Field()
def f():
    return A.__dict__["x"].name
