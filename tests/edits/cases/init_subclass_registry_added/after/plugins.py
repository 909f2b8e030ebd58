from base import Plugin
class A(Plugin):
    pass
class B(Plugin):
    pass
