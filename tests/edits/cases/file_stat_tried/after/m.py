import os
HERE = os.path.dirname(os.path.abspath(__file__))

def f():
    try:
        os.stat(os.path.join(HERE, "flag"))
    except FileNotFoundError:
        return False
    return True
