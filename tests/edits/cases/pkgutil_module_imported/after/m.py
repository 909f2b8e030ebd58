import importlib
import pkgutil
import plugins
def f():
    return [importlib.import_module("plugins." + found.name).X for found in pkgutil.iter_modules(plugins.__path__)]
