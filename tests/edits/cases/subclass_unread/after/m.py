class Base:
    def go(self):
        return 1
class A(Base):
    pass
class B(Base):
    def go(self):
        return 2
def f():
    return A().go()
