import os
def f():
    return open(os.path.expanduser("~/rc")).read()
