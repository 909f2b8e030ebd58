from .. import conf
from ..conf import N
def f():
    return conf.N + N
