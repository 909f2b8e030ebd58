from .impl import go as work
