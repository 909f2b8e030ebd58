import conf
def g():
    pass
