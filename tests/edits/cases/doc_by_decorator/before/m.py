HELP = {}
def tool(fn):
    HELP[fn.__name__] = fn.__doc__
    return fn
@tool
def h():
    """One."""
    return 1
def f():
    return HELP["h"]
