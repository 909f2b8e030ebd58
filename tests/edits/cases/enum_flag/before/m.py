from enum import Flag
class Mode(Flag):
    R = 1
    W = 2
def f():
    return (Mode.R | Mode.W).value
