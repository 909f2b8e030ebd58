class Base:
    label = "base"

