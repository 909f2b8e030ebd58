__version__ = '1.0'
from pkg.part import h
