class Loud:
    pass
