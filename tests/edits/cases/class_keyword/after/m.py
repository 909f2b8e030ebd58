class Base:
    def __init_subclass__(cls, tag=None):
        cls.tag = tag
class A(Base, tag="y"):
    pass
def f():
    return A.tag
