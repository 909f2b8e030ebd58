import sys
import other
def f():
    return "h1" in sys.modules
