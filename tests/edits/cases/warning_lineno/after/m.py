import warnings
# a comment
def f():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("x")
    return caught[0].lineno
