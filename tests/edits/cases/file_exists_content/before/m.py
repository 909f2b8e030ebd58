import os
HERE = os.path.dirname(os.path.abspath(__file__))

def f():
    return os.path.exists(os.path.join(HERE, "flag")) and os.path.isfile(os.path.join(HERE, "flag"))
