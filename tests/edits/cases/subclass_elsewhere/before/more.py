from base import Base
class A(Base):
    pass

