from enum import Flag
class Mode(Flag):
    R = 1
    W = 4
def f():
    return (Mode.R | Mode.W).value
