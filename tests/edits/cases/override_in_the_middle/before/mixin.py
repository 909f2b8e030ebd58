from base import Base
class Mixin(Base):
    other = 1

