import handlers
import tfw
def f():
    return tfw.call("double", 2)
