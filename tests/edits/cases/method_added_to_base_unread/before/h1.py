class Base:
    x = 1
