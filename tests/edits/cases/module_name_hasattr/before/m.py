import conf
def f():
    return getattr(conf, "DEBUG", None)
