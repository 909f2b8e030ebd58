import doctest
import sys
def h(x):
    """
    >>> h(1)
    2
    """
    return x + 1
def f():
    runner = doctest.DocTestRunner(verbose=False)
    for test in doctest.DocTestFinder().find(sys.modules[__name__]):
        runner.run(test, out=lambda text: None)
    return runner.failures
