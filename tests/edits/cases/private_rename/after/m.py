def _strip(x):
    return x.strip()
def f():
    return _strip(" a ")
