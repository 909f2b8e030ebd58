def tool():
    """Give one."""
    return 1
def f():
    return tool.__doc__
