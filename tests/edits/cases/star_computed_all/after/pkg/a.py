__all__ = ["g"]
def g():
    return 1
