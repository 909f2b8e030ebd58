import sys as system
import helper
def f():
    return system.modules["co" + "nf"].A
