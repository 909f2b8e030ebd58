LOG = []
class Watched:
    def __delete__(self, instance):
        LOG.append("deleted")
class Box:
    size = Watched()
def f():
    box = Box()
    del box.size
    return LOG
