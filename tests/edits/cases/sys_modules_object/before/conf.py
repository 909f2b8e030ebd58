import sys
class Conf:
    size = 1
sys.modules[__name__] = Conf()
