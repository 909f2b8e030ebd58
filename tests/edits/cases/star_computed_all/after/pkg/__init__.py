from .a import *
from .b import *
from . import a, b
__all__ = a.__all__ + b.__all__
