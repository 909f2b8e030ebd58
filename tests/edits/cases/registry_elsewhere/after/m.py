import kinds
from registry import KINDS
def f():
    return KINDS["a"]
