def f():
    try:
        import zz_none as found
    except ImportError:
        import h1 as found
    return found.X
