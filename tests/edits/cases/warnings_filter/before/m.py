import warnings
warnings.simplefilter("ignore")
def f():
    warnings.warn("careful")
    return 1
