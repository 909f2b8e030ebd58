from .core import work as run
