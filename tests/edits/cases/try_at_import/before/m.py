from probe import probe
try:
    N = probe()
except OSError:
    N = 0
def f():
    return N
