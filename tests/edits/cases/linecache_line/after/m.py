import os
HERE = os.path.dirname(os.path.abspath(__file__))

import linecache
def f():
    return linecache.getline(os.path.join(HERE, "h1.py"), 1)
