import sys
def limit():
    return sys._getframe(1).f_globals['LIMIT']
