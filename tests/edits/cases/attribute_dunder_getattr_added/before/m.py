class Box:
    x = 1
def f():
    try:
        return Box().size
    except AttributeError:
        return None
