import warnings
warnings.simplefilter("error")
def f():
    warnings.warn("careful")
    return 1
