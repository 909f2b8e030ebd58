import warnings
def h():
    warnings.warn('two')
