class Base:
    def go(self):
        return 1
class A(Base):
    pass
    def go(self):
        return 2

def f():
    return A().go()
