import weakref
LOG = []
class Box:
    pass
def gone(word):
    LOG.append(word + "2")
def f():
    box = Box()
    weakref.finalize(box, gone, "x")
    del box
    return LOG
