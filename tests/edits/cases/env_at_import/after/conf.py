import os
class Conf:
    n = int(os.environ.get("ZZ_N", "0"))
