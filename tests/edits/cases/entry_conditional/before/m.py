import sys
if sys.version_info >= (3,):
    def f():
        return 1
else:
    def f():
        return 0
