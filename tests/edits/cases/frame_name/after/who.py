import sys
def caller():
    return sys._getframe(1).f_code.co_name
