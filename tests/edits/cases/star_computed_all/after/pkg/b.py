__all__ = ["len"]
def len(x):
    return 99
