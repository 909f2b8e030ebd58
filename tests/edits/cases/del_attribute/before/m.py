import conf
def f():
    return hasattr(conf, "A")
