import sys
class Conf:
    size = 2
sys.modules[__name__] = Conf()
