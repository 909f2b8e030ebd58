import contextlib
class Thing:
    def close(self):
        pass
def f():
    try:
        with contextlib.closing(Thing()):
            return 1
    except AttributeError:
        return 2
