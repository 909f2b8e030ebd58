class Base:
    pass

