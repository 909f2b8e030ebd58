def f():
    import h1
    return h1.X
