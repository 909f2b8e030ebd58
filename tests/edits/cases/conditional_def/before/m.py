FAST = True
if FAST:
    def h():
        return "fast"
else:
    def h():
        return "slow"
def f():
    return h()
