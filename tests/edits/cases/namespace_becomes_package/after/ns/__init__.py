import builtins
from . import a
a.len = lambda x: 99
