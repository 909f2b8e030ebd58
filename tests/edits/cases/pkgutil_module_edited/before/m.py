import pkgutil
import plugins
def f():
    return [found.name for found in pkgutil.iter_modules(plugins.__path__)]
