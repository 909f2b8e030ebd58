from base import Base
class A(Base):
    pass
class B(Base):
    pass

