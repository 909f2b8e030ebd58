def _helper(x):
    return x + 1
def other(x):
    return _helper(x)
def f():
    return 1
