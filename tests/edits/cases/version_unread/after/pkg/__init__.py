__version__ = '1.1'
from pkg.part import h
