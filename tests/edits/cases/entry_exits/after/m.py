import sys
def f():
    sys.exit(2)
