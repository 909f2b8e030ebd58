import os
class Place:
    def __fspath__(self):
        return "a/b"
def f():
    return os.path.basename(Place())
