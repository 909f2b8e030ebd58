import contextlib
class Thing:
    pass
def f():
    try:
        with contextlib.closing(Thing()):
            return 1
    except AttributeError:
        return 2
