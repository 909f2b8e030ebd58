import os
HERE = os.path.dirname(os.path.abspath(__file__))

import sys
def f():
    sys.path.insert(0, os.path.join(HERE, "a.zip"))
    import h1
    return h1.X
