import importlib.abc
import importlib.util
import sys
class Made(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        return importlib.util.spec_from_loader(name, self) if name == "zz_made" else None
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        module.X = 1
def f():
    sys.meta_path.insert(0, Made())
    import zz_made
    return zz_made.X
