try:
    import tdep
except ImportError:
    tdep = None
def f():
    return tdep is None
