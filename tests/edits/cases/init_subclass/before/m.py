from base import Base
class A(Base):
    pass
def f():
    return A.label
