def _clean(x):
    return x.strip()
def f():
    return _clean(" a ")
