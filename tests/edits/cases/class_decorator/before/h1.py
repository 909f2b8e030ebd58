def tagged(cls):
    cls.tag = cls.__name__ + "!"
    return cls
