class Box:
    x = 1
    size = 2
def f():
    try:
        return '{0.size}'.format(Box)
    except AttributeError:
        return None
