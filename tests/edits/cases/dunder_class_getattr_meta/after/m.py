class Meta(type):
    def __getattr__(cls, name):
        return name.title()
class Box(metaclass=Meta):
    pass
def f():
    return Box.size
