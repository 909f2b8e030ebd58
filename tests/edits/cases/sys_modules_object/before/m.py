import conf
def f():
    return conf.size
