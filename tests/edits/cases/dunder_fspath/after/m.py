import os
class Place:
    def __fspath__(self):
        return "a/c"
def f():
    return os.path.basename(Place())
