import conf
def f():
    return sorted(k for k in vars(conf) if k.isupper())
