import functools
import operator
OPS = {'all': operator.add}
def f():
    return functools.reduce(OPS['all'], [2, 3])
