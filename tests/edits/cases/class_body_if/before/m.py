import sys
class Box:
    if sys.version_info > (3,):
        size = 1
    else:
        size = 2
def f():
    return Box.size
