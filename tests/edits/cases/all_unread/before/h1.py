__all__ = ['h']
def h():
    return 1
def g():
    return 2
