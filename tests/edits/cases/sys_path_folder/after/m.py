import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import tool
def f():
    return tool.go()
