from base import Base
class Mixin(Base):
    other = 1
    def go(self):
        return super().go() + 1

