import os
if os.environ.get("ZZ_FAST"):
    def h():
        return "fast"
else:
    def h():
        return "slow"
def f():
    return h()
