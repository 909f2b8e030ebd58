import os
HERE = os.path.dirname(os.path.abspath(__file__))

import gzip
def f():
    with gzip.open(os.path.join(HERE, "a.gz"), "rt") as stream:
        return stream.read()
