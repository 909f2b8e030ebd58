class Box:
    x = 1
    def __getattr__(self, name):
        return name
def f():
    try:
        return Box().size
    except AttributeError:
        return None
