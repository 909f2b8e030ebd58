PLUGINS = {}
class Plugin:
    def __init_subclass__(cls):
        PLUGINS[cls.__name__] = cls
