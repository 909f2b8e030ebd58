from base import Base
class A(Base):
    def __init__(self):
        super().__init__()
def f():
    return A().n
