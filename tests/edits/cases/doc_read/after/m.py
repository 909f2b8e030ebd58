def tool():
    """Give the number one."""
    return 1
def f():
    return tool.__doc__
