__all__ = ['h', 'g']
def h():
    return 1
def g():
    return 2
