class Base:
    label = "base"
    def __init_subclass__(cls):
        cls.label = cls.__name__

