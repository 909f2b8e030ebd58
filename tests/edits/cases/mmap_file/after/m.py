import os
HERE = os.path.dirname(os.path.abspath(__file__))

import mmap
def f():
    with open(os.path.join(HERE, "a.bin"), "rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as found:
        return bytes(found)
