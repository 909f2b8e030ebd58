import warnings
def h():
    warnings.warn('one')
