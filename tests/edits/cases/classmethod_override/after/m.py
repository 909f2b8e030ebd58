class Base:
    @classmethod
    def make(cls):
        return cls.kind()
    @classmethod
    def kind(cls):
        return "base"
class Box(Base):
    @classmethod
    def kind(cls):
        return "crate"
def f():
    return Box.make()
