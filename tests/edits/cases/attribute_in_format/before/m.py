class Box:
    x = 1
def f():
    try:
        return '{0.size}'.format(Box)
    except AttributeError:
        return None
