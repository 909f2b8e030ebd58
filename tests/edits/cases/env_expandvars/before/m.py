import os
def f():
    return os.path.expandvars("$ZZ_DIR/x")
