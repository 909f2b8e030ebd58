import os
HERE = os.path.dirname(os.path.abspath(__file__))

def f():
    return sorted(os.listdir(os.path.join(HERE, "data")))
