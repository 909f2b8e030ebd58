import importlib
_WHERE = {"go": "one", "stop": "two"}
def __getattr__(name):
    if name not in _WHERE:
        raise AttributeError(name)
    return getattr(importlib.import_module("pkg." + _WHERE[name]), name)
