import sys
from helper import g
def f():
    g()
    return sys.modules.get("co" + "nf").A
