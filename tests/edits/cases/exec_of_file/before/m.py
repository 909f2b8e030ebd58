import os
def f():
    space = {}
    with open(os.path.join(os.path.dirname(__file__), "conf.py")) as stream:
        exec(stream.read(), space)
    return space["N"]
