class Base:
    def go(self):
        return 1
class A(Base):
    pass

def f():
    return A().go()
