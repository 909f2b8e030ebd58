from base import Plugin
class A(Plugin):
    pass
