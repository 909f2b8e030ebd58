from one import Base
class Box(Base):
    pass
def f():
    return Box().size()
