from mixins import Loud
class Base:
    def say(self):
        return "hi"
class Box(Loud, Base):
    pass
def f():
    return Box().say()
