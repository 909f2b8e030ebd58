class Base:
    def __init_subclass__(cls, scale=1, **more):
        super().__init_subclass__(**more)
        cls.scale = scale
class Box(Base, scale=2):
    pass
def f():
    return Box.scale
