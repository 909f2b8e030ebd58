import conf
def f():
    return conf.load("conf.toml")["n"]
