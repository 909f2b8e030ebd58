from base import Base
from mixin import Mixin
class A(Mixin, Base):
    pass
def f():
    return A().go()
