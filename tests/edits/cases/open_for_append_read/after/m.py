import os
HERE = os.path.dirname(os.path.abspath(__file__))

def f():
    with open(os.path.join(HERE, "a.txt"), "r+") as stream:
        return stream.read()
