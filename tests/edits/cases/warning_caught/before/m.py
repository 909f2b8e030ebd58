import warnings
from h1 import h
def f():
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        h()
    return [str(one.message) for one in found]
