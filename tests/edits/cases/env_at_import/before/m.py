from conf import Conf
def f():
    return Conf.n
