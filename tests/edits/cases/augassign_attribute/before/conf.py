class Conf:
    n = 1
