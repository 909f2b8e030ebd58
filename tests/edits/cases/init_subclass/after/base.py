NAMES = []
class Base:
    def __init_subclass__(cls, **options):
        super().__init_subclass__()
        cls.label = cls.__name__ + "-2"
