import h2
import h3
def f():
    return h3.K
