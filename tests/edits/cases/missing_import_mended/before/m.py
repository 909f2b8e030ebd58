def f():
    import no_such_helper
    return no_such_helper.N
