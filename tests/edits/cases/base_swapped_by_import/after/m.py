from two import Base
class Box(Base):
    pass
def f():
    return Box().size()
