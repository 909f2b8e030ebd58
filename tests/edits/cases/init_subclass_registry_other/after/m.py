PLUGINS, OTHERS = {}, {}
class Plugin:
    def __init_subclass__(cls):
        PLUGINS[cls.__name__] = cls
class Other:
    def __init_subclass__(cls):
        OTHERS[cls.__name__] = cls
class A(Plugin):
    value = 1
class B(Other):
    value = 3
def f():
    return [plugin.value for plugin in PLUGINS.values()]
