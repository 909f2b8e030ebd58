class Base:
    size = 1
    def go(self):
        return self.size
class Box(Base):
    x = 1
    size = 2
def f():
    return Box().go()
