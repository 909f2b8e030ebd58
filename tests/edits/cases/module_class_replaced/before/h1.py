import sys
import types
class Lazy(types.ModuleType):
    @property
    def size(self):
        return 3
sys.modules[__name__].__class__ = Lazy
