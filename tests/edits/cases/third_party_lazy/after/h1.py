def h():
    from tpkg import g
    return g()
