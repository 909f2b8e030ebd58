import sys
def f():
    sys.exit(1)
