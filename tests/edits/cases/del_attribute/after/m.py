import conf
del conf.A
def f():
    return hasattr(conf, "A")
