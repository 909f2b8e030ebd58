class Lost(ValueError):
    pass
