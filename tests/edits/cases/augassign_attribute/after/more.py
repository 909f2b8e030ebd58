from conf import Conf
Conf.n += 2
