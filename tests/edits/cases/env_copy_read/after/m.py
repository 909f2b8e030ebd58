import os
def f():
    env = dict(os.environ)
    return env.get("ZZ_MODE")
