import base
import plugins
def f():
    return sorted(base.PLUGINS)
