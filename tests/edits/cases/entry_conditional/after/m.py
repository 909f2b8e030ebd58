import sys
if sys.version_info >= (3,):
    def f():
        return 2
else:
    def f():
        return 0
