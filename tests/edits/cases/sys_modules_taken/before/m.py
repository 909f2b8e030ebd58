from sys import modules as there
import helper
def f():
    return there["conf"].A
