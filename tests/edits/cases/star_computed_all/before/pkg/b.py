__all__ = []
def len(x):
    return 99
