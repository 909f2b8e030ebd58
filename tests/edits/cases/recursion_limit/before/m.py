import sys
sys.setrecursionlimit(2000)
def f():
    return sys.getrecursionlimit()
