import sys
sys.setrecursionlimit(3000)
def f():
    return sys.getrecursionlimit()
