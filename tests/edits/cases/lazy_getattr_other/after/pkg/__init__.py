import importlib
_WHERE = {"go": "one", "stop": "two"}
def __getattr__(name):
    return getattr(importlib.import_module("pkg." + _WHERE[name]), name)
