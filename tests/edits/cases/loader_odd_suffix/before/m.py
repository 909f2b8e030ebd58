import os
HERE = os.path.dirname(os.path.abspath(__file__))

import importlib.machinery
import importlib.util
def f():
    loader = importlib.machinery.SourceFileLoader("plug", os.path.join(HERE, "plug.conf"))
    spec = importlib.util.spec_from_loader("plug", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module.X
