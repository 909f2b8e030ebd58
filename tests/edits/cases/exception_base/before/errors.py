class Lost(Exception):
    pass
